/// How a payload is encoded. Marked in every entry, so that every node can read both.
public enum PayloadCoding: UInt8, Hashable, Sendable, CaseIterable {
    /// JSON (RFC 8259): readable in the log, writable from any language.
    case json = 0
    /// The compact binary coding: for speed.
    case compact = 1
}
