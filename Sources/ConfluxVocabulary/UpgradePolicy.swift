/// When the schema version of a store rises, as a program that hosts it wants it.
///
/// A store's version rises at one number for all hosts, to the newest version that each of them understands.
public enum UpgradePolicy: UInt8, Sendable, Hashable, CaseIterable {
    /// As soon as every live host understands the newer version.
    case whenAllUnderstand = 1
    /// When somebody says so, by `conflux upgrade` or `Node.upgrade(_:)`, and every live host understands the newer
    /// version.
    case whenTold = 2
    /// Not while this program hosts the store.
    case never = 3
}
