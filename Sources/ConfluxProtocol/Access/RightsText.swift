/// The text form of rights: words, in any order.
///
/// | word | allows |
/// |---|---|
/// | `observe` | reading states, and actions in the log |
/// | `dispatch` | dispatching actions |
/// | `host` | hosting replicas, which includes creating and observing the store |
/// | `administer` | dropping and freezing stores, skipping entries |
/// | `all` | everything |
/// | `payload-max=SIZE` | actions of at most SIZE bytes: `4096`, `64KiB`, `1MiB` |
/// | `rate=N/s` | at most N actions a second |
/// | `sessions-max=N` | at most N sessions that are remembered |
/// | `connections-max=N` | at most N connections to each socket |
///
/// `observe=PATTERN,PATTERN` and so on restrict a right to some stores; see `StorePattern`.
public enum RightsText {
    /// The most patterns of one right.
    public static let patternsMax = 256

    /// Reads rights.
    ///
    /// - Parameter words: The words.
    /// - Returns: The rights.
    /// - Throws: ``InvalidText`` for the first invalid word, or if the words allow nothing.
    package static func read(_ words: some Sequence<Substring>) throws(InvalidText) -> Rights {
        var rights = Rights.none
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count == 2 ? parts[1] : nil
            switch (parts[0], value) {
            case ("all", nil):
                for permission in Rights.Permission.allCases {
                    try add(permission, nil, to: &rights)
                }
            case ("payload-max", let size?):
                guard rights.payloadBytesMax == nil, let bytes = byteCount(size) else {
                    throw InvalidText(
                        "\(InvalidText.quoted(word)) must be given once, as in payload-max=64KiB")
                }
                rights.payloadBytesMax = bytes
            case ("rate", let rate?):
                guard rights.actionsPerSecondMax == nil, rate.hasSuffix("/s"),
                    let count = UInt32(rate.dropLast(2)), count > 0
                else {
                    throw InvalidText(
                        "\(InvalidText.quoted(word)) must be given once, as in rate=500/s")
                }
                rights.actionsPerSecondMax = count
            case ("sessions-max", let most?): try set(\.sessionsMax, most, word, of: &rights)
            case ("connections-max", let most?): try set(\.connectionsMax, most, word, of: &rights)
            case (let name, _):
                guard let permission = Rights.Permission(rawValue: String(name)) else {
                    throw InvalidText(
                        """
                        there is no right \(InvalidText.quoted(word)): a key may observe, dispatch, \
                        host, administer, or all, each for all stores or as in observe=orders/*
                        """)
                }
                try add(permission, value, to: &rights)
            }
        }
        guard !rights.patterns.isEmpty else {
            throw InvalidText(
                "say what the key may do: observe, dispatch, host, administer, or all")
        }
        return rights
    }

    private static func set(
        _ limit: WritableKeyPath<Rights, UInt32?>, _ text: Substring, _ word: Substring,
        of rights: inout Rights
    ) throws(InvalidText) {
        guard rights[keyPath: limit] == nil, let count = UInt32(text), count > 0 else {
            throw InvalidText(
                """
                \(InvalidText.quoted(word)) must be given once, with a number, as in \
                \(word.prefix { $0 != "=" })=100
                """)
        }
        rights[keyPath: limit] = count
    }

    private static func add(
        _ permission: Rights.Permission, _ text: Substring?, to rights: inout Rights
    ) throws(InvalidText) {
        guard rights.patterns[permission] == nil else {
            throw InvalidText(
                "the right \(permission.rawValue) is given twice: separate patterns by commas")
        }
        guard let text else {
            rights.patterns[permission] = [.all]
            return
        }
        var patterns: [StorePattern] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            patterns.append(try StorePattern(reading: part))
        }
        guard patterns.count <= patternsMax else {
            throw InvalidText(
                "the right \(permission.rawValue) has more than \(patternsMax) patterns")
        }
        rights.patterns[permission] = patterns
    }

    private static func byteCount(_ text: Substring) -> UInt32? {
        // Other characters may be equal to a unit's by Unicode, such as the sign of the kelvin to K.
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        for (suffix, factor) in [("KiB", UInt32(1) << 10), ("MiB", 1 << 20)]
        where text.hasSuffix(suffix) {
            guard let count = UInt32(text.dropLast(3)) else { return nil }
            let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: factor)
            return bytes > 0 && !isTooLarge ? bytes : nil
        }
        return UInt32(text).flatMap { $0 > 0 ? $0 : nil }
    }
}

extension StorePattern {
    /// Reads a pattern.
    ///
    /// - Parameter text: The text, as ``init(_:)`` takes it.
    /// - Throws: ``InvalidText`` for any other text.
    package init(reading text: some StringProtocol) throws(InvalidText) {
        guard let pattern = StorePattern(text) else {
            throw InvalidText(
                """
                \(InvalidText.quoted(text)) is not a pattern of stores: write \
                STATE/INSTANCE with * for any characters, as in orders/*, or STATE for STATE/shared
                """)
        }
        self = pattern
    }
}

/// What is wrong with a word, and what to do.
package struct InvalidText: Error {
    /// Both, as a sentence without its first capital and its full stop.
    package let message: String

    /// Makes an error.
    package init(_ message: String) { self.message = message }

    /// A word as messages show it: in quotes, and cut after 64 characters.
    package static func quoted(_ word: some StringProtocol) -> String {
        "\"\(word.count > 64 ? word.prefix(64) + "…" : String(word))\""
    }
}
