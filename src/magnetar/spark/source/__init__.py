"""The source: ``planning`` decides how far a read goes and cuts it into tasks, ``reading`` makes rows of entries."""
