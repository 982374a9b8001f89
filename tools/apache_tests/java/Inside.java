import java.lang.reflect.Method;
import java.util.Arrays;
import org.mockito.invocation.InvocationOnMock;
import org.testng.SkipException;

/** What a process of magnetar does not show: a test that asks for it is skipped. */
class Inside {
    private static volatile SkipException last;

    /** Answers what every object answers, and skips the test for anything else. */
    static Object of(InvocationOnMock call) {
        return of(call.getMock(), call.getMethod(), call.getArguments());
    }

    /** The same for an object that is no mock. */
    static Object of(Object asked, Method method, Object[] arguments) {
        switch (method.getName()) {
            case "toString":
                return "a process of magnetar";
            case "hashCode":
                return System.identityHashCode(asked);
            case "equals":
                return asked == arguments[0];
            default:
                throw skip(method.getDeclaringClass().getSimpleName() + "." + method.getName());
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
