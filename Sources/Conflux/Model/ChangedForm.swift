// What is said if the form of a state or of its actions changed, and its version did not.

extension ReplicatedState {
    /// The error for a snapshot of the present version that is no value of the present type.
    static func changedForm(ofSnapshot reason: CodingFailure) -> StoreError {
        StoreError(
            .formChanged,
            """
            The snapshot of \(name) has schema version \(schemaVersion), as this program has, but \
            another form: \(reason). If this program's form is the right one, raise schemaVersion of \
            \(name) to \(schemaVersion + 1), and give \(name) a migrate(_:from:) that reads version \
            \(schemaVersion).
            """, reason)
    }
}

extension BridgedState {
    /// The error for a payload that is no action of this program.
    ///
    /// - Parameters:
    ///   - version: The schema version with which the action was dispatched: at most the present one.
    ///   - reason: Why it can't be decoded.
    /// - Returns: The error.
    package static func changedForm(
        ofActionWith version: Int, _ reason: CodingFailure
    ) -> StoreError {
        if version < schemaVersion {
            return StoreError(
                .formChanged,
                """
                The action of \(name) has schema version \(version), and this program, with version \
                \(schemaVersion), can't read it: \(reason). Let the type of the actions read what older \
                versions wrote, as long as the log may have it.
                """, reason)
        }
        return StoreError(
            .formChanged,
            """
            The action of \(name) has schema version \(version), as this program has, but is none of \
            its actions: \(reason). If another program dispatched it, the two have different actions: \
            raise schemaVersion of \(name) whenever they change.
            """, reason)
    }
}
