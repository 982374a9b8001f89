"""One topic's life: accept, order, fan out."""
