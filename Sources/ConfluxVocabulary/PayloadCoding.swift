/// How a payload is encoded. Every entry says it, so that every node can read both codings.
public enum PayloadCoding: UInt8, Hashable, Sendable, CaseIterable {
    /// JSON (RFC 8259): readable in the log, writable from any language.
    case json = 0
    /// The compact binary coding: for speed.
    case compact = 1
}
