"""Java's classes of a Spark session in an archive that Java maps into memory, instead of reading, checking and linking
some twenty thousand of them each time (Java's "AppCDS"; docs/decisions/065-class-archive.md).

    python -m magnetar.spark.class_archive

makes it, once for a Java and a Spark: 190 MB, half a minute. It lies beside the package, or, where that cannot be
written, in a directory of the user's own (XDG_CACHE_HOME or ~/.cache). `local_session` takes what it finds there, so it
has to belong to the user or to root, and no one else may write to it. Sessions of one's own take what
``python -m magnetar.spark.class_archive --option`` prints as ``spark.driver.extraJavaOptions``.

* ``archive``   where it gets to, whole or not at all
* ``rehearsal`` the session whose classes it holds
"""
