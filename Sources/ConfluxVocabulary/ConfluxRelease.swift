/// Which release of Conflux this is.
package enum ConfluxRelease {
    /// The version: `MAJOR.MINOR.PATCH`, as `docs/versions.md` explains it. It is written only
    /// here: `script/release` reads it from this line.
    package static let version = "0.2.0"
}
