import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// The schema version that is in force from a state on. If it rose from that very state, the store's `upgraded` entry in
/// `conflux log --json` says the same.
package struct StateVersion: Sendable, Equatable {
    /// The last entry in the state.
    let base: SequenceNumber
    /// The schema version in force.
    let schemaVersion: UInt32
    /// The digest of the state in the form of that version; nil if it has that form, or nobody noted one.
    let digest: Digest?

    var version: VersionInForce { VersionInForce(schemaVersion, migrated: digest) }
}

extension StateVersion: CustomStringConvertible {
    /// Parses `BASE:VERSION` or `BASE:VERSION:DIGEST`; nil for anything else.
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), let base = UInt64(parts[0]), base > 0,
            let version = UInt32(parts[1]), version > 0
        else { return nil }
        let digest = parts.count == 3 ? Digest(parts[2]) : nil
        guard parts.count == 2 || digest != nil else { return nil }
        self.init(base: SequenceNumber(base), schemaVersion: version, digest: digest)
    }

    package var description: String { "\(base):\(schemaVersion)\(digest.map { ":\($0)" } ?? "")" }
}

extension ValueParser where Value == StateVersion {
    static var stateVersion: ValueParser<StateVersion> {
        ValueParser(
            "BASE:VERSION[:DIGEST]",
            expecting: """
                what is in force: the number of an entry, a schema version and perhaps 64 hexadecimal digits, with \
                colons between them
                """
        ) { StateVersion($0) }
    }
}
