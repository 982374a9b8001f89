"""The demo: ``run`` is a whole job with broker and Spark, ``flights`` the data that it works on."""
