import java.util.Arrays;
import org.testng.IConfigurationListener;
import org.testng.ITestListener;
import org.testng.ITestResult;

/** Prints one line for each test: verdict, name, milliseconds, reason. */
public class Verdicts implements ITestListener, IConfigurationListener {
    private static final int REASON_MAX = 400;

    /** Whether a test runs; otherwise what is before and after it. */
    public static volatile boolean inTest;

    @Override
    public void onTestStart(ITestResult result) {
        System.err.println("== " + name(result));
        Inside.asked();
        inTest = true;
    }

    @Override
    public void onTestSuccess(ITestResult result) {
        say("PASS", result);
    }

    @Override
    public void onTestFailure(ITestResult result) {
        say("FAIL", result);
    }

    @Override
    public void onTestSkipped(ITestResult result) {
        say("SKIP", result);
    }

    @Override
    public void onConfigurationFailure(ITestResult result) {
        say("SETUP", result);
    }

    private static String name(ITestResult result) {
        String parameters = result.getParameters().length == 0 ? "" : Arrays.deepToString(result.getParameters());
        return result.getMethod().getRealClass().getSimpleName() + "." + result.getMethod().getMethodName()
                + parameters.replaceAll("\\s+", " ");
    }

    private static void say(String verdict, ITestResult result) {
        inTest = false;
        String reason = "";
        if (result.getThrowable() != null) {
            reason = String.valueOf(result.getThrowable());
            for (Throwable cause = result.getThrowable(); cause != null; cause = cause.getCause()) {
                String text = String.valueOf(cause.getMessage());
                if (text.contains("INSIDE ") || text.contains("REFUSED ")) {
                    verdict = text.contains("INSIDE ") ? "INSIDE" : "REFUSED";
                    reason = text;
                    break;
                }
            }
            Throwable asked = Inside.asked();
            if (verdict.equals("FAIL") && asked != null) {
                verdict = "INSIDE";
                reason = asked.getMessage() + ", and then " + reason;
            }
            if (verdict.equals("FAIL") || verdict.equals("SETUP")) {
                result.getThrowable().printStackTrace();
                String changed = BrokerProcess.changed();
                reason += changed.isEmpty() ? "" : " CHANGED" + changed;
            }
        }
        reason = reason.replaceAll("\\s+", " ");
        System.out.println("@@\t" + verdict + "\t" + name(result) + "\t" + (result.getEndMillis() - result.getStartMillis())
                + "\t" + reason.substring(0, Math.min(REASON_MAX, reason.length())));
    }
}
