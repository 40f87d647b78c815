"""From measured waste and debt to quota proposals. Nothing here writes to a cluster."""
