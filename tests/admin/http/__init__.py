"""HTTP's edges: bodies, origins, connections and what holds for every route."""
