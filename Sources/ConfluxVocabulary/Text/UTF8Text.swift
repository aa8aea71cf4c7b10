/// Where bytes are not UTF-8.
package struct InvalidUTF8: Error, Hashable, Sendable, CustomStringConvertible {
    /// The offset of the first byte that begins no valid sequence, from 0.
    package let offset: Int
    /// That byte.
    package let byte: UInt8

    /// The byte and its offset: `byte 0xE9 at offset 3 is not UTF-8`.
    package var description: String { "byte \(hexadecimal) at offset \(offset) is not UTF-8" }

    /// The byte, as `0xE9`.
    package var hexadecimal: String {
        "0x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
}

// Bytes become text here and nowhere else: a rule of RepositoryTests looks for other ways. Most of those ways replace
// what is not UTF-8 by U+FFFD, so that two texts that differ become one.
extension String {
    /// Makes a text of bytes that came from outside.
    ///
    /// - Parameter bytes: The text in UTF-8.
    /// - Throws: ``InvalidUTF8`` if the bytes are anything else.
    package init(utf8 bytes: some Collection<UInt8>) throws(InvalidUTF8) {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw UTF8Check.fault(in: Array(bytes))
        }
        self = text
    }

    /// Makes a text of a C string that came from outside.
    ///
    /// - Parameter words: The text in UTF-8, up to a zero.
    /// - Throws: ``InvalidUTF8`` if the bytes are anything else.
    package init(utf8CString words: UnsafePointer<CChar>) throws(InvalidUTF8) {
        guard let text = String(validatingCString: words) else {
            var bytes: [UInt8] = []
            while words[bytes.count] != 0 {
                bytes.append(UInt8(bitPattern: words[bytes.count]))
            }
            throw UTF8Check.fault(in: bytes)
        }
        self = text
    }

    /// Makes a text of bytes that this program has made or checked itself. Other bytes are a programmer error, and
    /// trap.
    ///
    /// - Parameter bytes: The text in UTF-8.
    @inlinable
    package init(checkedUTF8 bytes: some Collection<UInt8>) {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            preconditionFailure("bytes that were checked are not UTF-8: \(Array(bytes))")
        }
        self = text
    }

    /// Makes a text that people read in a message. What is not UTF-8 is replaced, so no program may decide by it.
    ///
    /// - Parameter bytes: The words of another program.
    package init(shown bytes: some Collection<UInt8>) {
        self.init(decoding: bytes, as: UTF8.self)
    }

    /// Makes a text that people read in a message. What is not UTF-8 is replaced, so no program may decide by it.
    ///
    /// - Parameter words: The words of a C library, such as those of `strerror`.
    package init(shownCString words: UnsafePointer<CChar>) {
        self.init(cString: words)
    }
}

/// Checks for strict UTF-8 (RFC 3629): shortest forms only, no surrogates, nothing above U+10FFFF.
package enum UTF8Check {
    /// The length of the sequence that begins at the position; nil if it isn't UTF-8.
    package static func sequenceLength(
        _ input: UnsafeBufferPointer<UInt8>, at position: Int
    ) -> Int? {
        func isTail(_ place: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
            position + place < input.count && range.contains(input[position + place])
        }
        switch input[position] {
        case 0..<0x80: return 1
        case 0xC2...0xDF: return isTail(1) ? 2 : nil
        case 0xE0: return isTail(1, 0xA0...0xBF) && isTail(2) ? 3 : nil
        case 0xED: return isTail(1, 0x80...0x9F) && isTail(2) ? 3 : nil
        case 0xE1...0xEF: return isTail(1) && isTail(2) ? 3 : nil
        case 0xF0: return isTail(1, 0x90...0xBF) && isTail(2) && isTail(3) ? 4 : nil
        case 0xF1...0xF3: return isTail(1) && isTail(2) && isTail(3) ? 4 : nil
        case 0xF4: return isTail(1, 0x80...0x8F) && isTail(2) && isTail(3) ? 4 : nil
        default: return nil
        }
    }

    /// The first byte that isn't UTF-8; nil if there is none.
    package static func firstInvalid(_ input: UnsafeBufferPointer<UInt8>) -> Int? {
        var position = 0
        while position < input.count {
            if input[position] < 0x80 {
                position += 1
            } else if let length = sequenceLength(input, at: position) {
                position += length
            } else {
                return position
            }
        }
        return nil
    }

    /// The fault of bytes that are not UTF-8.
    fileprivate static func fault(in bytes: [UInt8]) -> InvalidUTF8 {
        guard let offset = bytes.withUnsafeBufferPointer(firstInvalid) else {
            preconditionFailure("the bytes are UTF-8: \(bytes)")
        }
        return InvalidUTF8(offset: offset, byte: bytes[offset])
    }
}
