// Filled by the work that needs this target.
