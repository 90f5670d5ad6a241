"""Large files in several transactions, removal of old rows, and salvage."""
