import ConfluxVocabulary

/// Keys as text: five characters for every four bytes. See [the RFC](https://rfc.zeromq.org/spec/32/).
enum Z85 {
    private static let characters = Array(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#".utf8
    )
    /// The value of each character.
    private static let values: [UInt8: UInt32] = Dictionary(
        uniqueKeysWithValues: characters.enumerated().map { ($1, UInt32($0)) })

    /// - Returns: The key's bytes; nil if the text is not a key.
    static func decode(_ text: String) -> [UInt8]? {
        let text = Array(text.utf8)
        guard text.count == CurvePublicKey.textCount else { return nil }
        var bytes: [UInt8] = []
        // It may be a secret. An array that never grows leaves no copy behind.
        bytes.reserveCapacity(CurvePublicKey.byteCount)
        for start in stride(from: 0, to: text.count, by: 5) {
            var number: UInt32 = 0
            for character in text[start..<start + 5] {
                guard let value = values[character] else { return nil }
                let (product, isTooLarge) = number.multipliedReportingOverflow(by: 85)
                let (sum, isAbove) = product.addingReportingOverflow(value)
                guard !isTooLarge, !isAbove else { return nil }
                number = sum
            }
            bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
        }
        return bytes
    }

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 4) {
            var number = bytes[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            var group: [UInt8] = []
            for _ in 0..<5 {
                group.append(characters[Int(number % 85)])
                number /= 85
            }
            text += group.reversed()
        }
        return String(checkedUTF8: text)
    }
}
