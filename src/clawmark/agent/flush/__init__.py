"""The flush: before a compaction, a model saves what matters in the daily log."""
