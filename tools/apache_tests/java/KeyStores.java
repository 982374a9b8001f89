import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Collections;
import java.util.Map;

/** Key stores of the format JKS, which magnetar asks an operator to convert into PKCS12. */
class KeyStores {
    private static final String[] NAMES = {"tlsKeyStore", "tlsTrustStore"};

    /** Converts those that the settings name into files of `folder`, and names these instead. */
    static void convert(Map<String, String> settings, Path folder) throws Exception {
        for (String name : NAMES) {
            String file = settings.getOrDefault(name, "");
            if (!file.endsWith(".jks")) {
                continue;
            }
            char[] password = settings.getOrDefault(name + "Password", "").toCharArray();
            KeyStore old = KeyStore.getInstance("JKS");
            try (InputStream in = Files.newInputStream(Path.of(file))) {
                old.load(in, password.length == 0 ? null : password);
            }
            KeyStore converted = KeyStore.getInstance("PKCS12");
            converted.load(null, null);
            for (String alias : Collections.list(old.aliases())) {
                if (old.isKeyEntry(alias)) {
                    converted.setKeyEntry(alias, old.getKey(alias, password), password, old.getCertificateChain(alias));
                } else {
                    converted.setCertificateEntry(alias, old.getCertificate(alias));
                }
            }
            Path to = folder.resolve(name + ".p12");
            try (OutputStream out = Files.newOutputStream(to)) {
                converted.store(out, password);
            }
            settings.put(name, to.toString());
            settings.put(name + "Type", "PKCS12");
        }
    }
}
