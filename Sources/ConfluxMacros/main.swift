import ConfluxExpansion

// The program is apart from what it does: if tests depended on it, SwiftPM would build them, and all that they need, twice.
try Plugin.main()
