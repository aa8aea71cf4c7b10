import ConfluxVocabulary

/// Reads the strings of a command.
struct CommandReader {
    var rest: Bytes

    /// A string of up to 255 bytes.
    mutating func text() throws(ZMTPFault) -> String {
        guard let count = rest.popFirst() else { throw ZMTPFault("a command that is cut off") }
        return try Self.text(try take(UInt64(count)))
    }

    /// Reads properties, and returns the socket type among them.
    mutating func socketType() throws(ZMTPFault) -> String {
        var socketType: String?
        while !rest.isEmpty {
            let property = try text()
            let value = try value()
            if property.lowercased() == "socket-type" {
                socketType = try Self.text(value)
            }
        }
        guard let socketType else { throw ZMTPFault("no socket type") }
        return socketType
    }

    /// A property's value, which its length in four bytes precedes.
    mutating func value() throws(ZMTPFault) -> Bytes {
        let count = try take(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return try take(count)
    }

    private static func text(_ bytes: Bytes) throws(ZMTPFault) -> String {
        do throws(InvalidUTF8) {
            return try String(utf8: bytes)
        } catch {
            throw ZMTPFault("a command with a text of which \(error)")
        }
    }

    private mutating func take(_ count: UInt64) throws(ZMTPFault) -> Bytes {
        guard count <= UInt64(rest.count) else { throw ZMTPFault("a command that is cut off") }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }
}
