import java.util.Arrays;
import org.mockito.invocation.InvocationOnMock;
import org.testng.SkipException;

/** What a process of magnetar does not show: a test that asks for it is skipped. */
class Inside {
    private static volatile SkipException last;

    /** Answers what every object answers, and skips the test for anything else. */
    static Object of(InvocationOnMock call) {
        switch (call.getMethod().getName()) {
            case "toString":
                return "a process of magnetar";
            case "hashCode":
                return System.identityHashCode(call.getMock());
            case "equals":
                return call.getMock() == call.getArgument(0);
            default:
                throw skip(call.getMethod().getDeclaringClass().getSimpleName() + "." + call.getMethod().getName());
        }
    }

    /** What skips a test when it is thrown; a test that fails after it was made is skipped too. */
    static SkipException skip(String what) {
        String place = Arrays.stream(new Throwable().getStackTrace()).filter(frame -> frame.getClassName().endsWith("Test"))
                .map(StackTraceElement::toString).findFirst().orElse("a base class");
        last = new SkipException("INSIDE " + what + " at " + place);
        return last;
    }

    /** What was asked for last since the question before, or null: some tests catch what skips them, and go on. */
    static SkipException asked() {
        SkipException found = last;
        last = null;
        return found;
    }

    /** Whether a method of this name, or a part of one, is among those that led here. */
    static boolean called(String method) {
        return Arrays.stream(new Throwable().getStackTrace()).map(StackTraceElement::getMethodName)
                .anyMatch(name -> name.equals(method) || name.startsWith("lambda$" + method + "$"));
    }
}
