import ConfluxVocabulary
import Foundation

/// An action type that lists its actions' names, so that error messages can list them.
///
/// Adopt it for actions that people type: after a typo they read `expected one of: add, decrement,
/// increment`.
public protocol NamedActions {
    /// The names of the cases, as they appear in JSON.
    static var actionNames: [String] { get }
}

/// Encodes and decodes the actions of one type, as payloads of entries.
///
/// An action is the same value in both codings: an enum case is an object with one member,
/// `{"add":{"amount":5}}`. Decoding is strict, since nobody can know what a misspelt field meant: a field
/// that the type doesn't read is an error, and so is a missing one. So a type with its own `init(from:)` must
/// read every field that it accepts. Hostile bytes cause an error, never a trap. Besides the action itself,
/// decoding takes at most 32 bytes of memory for each byte of the payload.
///
/// You can use one coder on any thread.
package struct ActionCoder<Action: Codable & Sendable>: Sendable {
    /// The most bytes of one payload.
    package let sizeBytesMax: Int
    private let pool = TapePool()
    /// The compact coding without a tape, if the type has one. *Use*: looked up once, instead of for each
    /// action.
    package let quick = QuickCoding<Action>.find()

    /// Makes a coder.
    ///
    /// - Parameter sizeBytesMax: The most bytes of one payload; 1 MiB by default.
    package init(sizeBytesMax: Int = 1 << 20) {
        self.sizeBytesMax = sizeBytesMax
    }

    /// Encodes an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - coding: The coding of the payload.
    /// - Returns: The payload. Equal actions have equal payloads, unless they contain sets.
    /// - Throws: Why the action can't be encoded, or that it is too large.
    package func encode(
        _ action: Action, as coding: PayloadCoding
    ) throws(CodingFailure) -> [UInt8] {
        let bytes = try encodeWhole(action, as: coding)
        guard bytes.count <= sizeBytesMax else {
            throw CodingFailure(
                .tooLarge, "the action takes \(bytes.count) bytes of at most \(sizeBytesMax)")
        }
        return bytes
    }

    private func encodeWhole(
        _ action: Action, as coding: PayloadCoding
    ) throws(CodingFailure) -> [UInt8] {
        if coding == .compact, let quick {
            // Bytes take no more than their own number, behind a format, a head and a count.
            let capacity =
                Action.self == Data.self
                ? unsafeBitCast(action, to: Data.self).count + 12 : QuickCodingLimits.bytesMax
            let bytes = [UInt8](unsafeUninitializedCapacity: capacity) {
                $1 = quick.write(action, to: UnsafeMutableRawBufferPointer($0)) ?? 0
            }
            if !bytes.isEmpty { return bytes }
        }
        return try encodeByTape(action, as: coding)
    }

    /// Encodes an action through `Codable`, whatever its type.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - coding: The coding of the payload.
    /// - Returns: The payload.
    /// - Throws: Why the action can't be encoded.
    package func encodeByTape(
        _ action: Action, as coding: PayloadCoding
    ) throws(CodingFailure) -> [UInt8] {
        try pool.withTape { (tape) throws(CodingFailure) in
            try tape.encode(action)
            return switch coding {
            case .json: try tape.canonicalBytes(of: 0)
            case .compact: try CompactWriter.write(tape)
            }
        }
    }

    /// Decodes an action.
    ///
    /// - Parameters:
    ///   - bytes: The payload.
    ///   - coding: The payload's coding, as its entry says.
    /// - Returns: The action.
    /// - Throws: What was expected, and where.
    package func decode(
        _ bytes: Bytes, as coding: PayloadCoding
    ) throws(CodingFailure) -> Action {
        try bytes.withUnsafeBufferPointer { (bytes) throws(CodingFailure) in
            try decode(bytes, as: coding)
        }
    }

    /// Decodes an action from contiguous memory.
    package func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, as coding: PayloadCoding
    ) throws(CodingFailure) -> Action {
        if coding == .compact, let quick, bytes.count <= sizeBytesMax {
            let place = UnsafeMutablePointer<Action>.allocate(capacity: 1)
            defer { place.deallocate() }
            if quick.read(bytes, into: place) { return place.move() }
        }
        return try decodeByTape(bytes, as: coding)
    }

    /// Decodes an action through `Codable`, whatever its type.
    ///
    /// - Parameters:
    ///   - bytes: The payload.
    ///   - coding: The payload's coding.
    /// - Returns: The action.
    /// - Throws: What was expected, and where.
    package func decodeByTape(
        _ bytes: UnsafeBufferPointer<UInt8>, as coding: PayloadCoding
    ) throws(CodingFailure) -> Action {
        try pool.withTape { (tape) throws(CodingFailure) in
            switch coding {
            case .json: try JSONReader.read(bytes, into: tape, sizeBytesMax: sizeBytesMax)
            case .compact: try CompactReader.read(bytes, into: tape, sizeBytesMax: sizeBytesMax)
            }
            let action: Action
            do throws(CodingFailure) {
                action = try tape.decode(Action.self)
            } catch {
                throw Self.explain(error, tape)
            }
            try tape.checkAllUsed()
            return action
        }
    }

    /// Decodes actions through `Codable`, on several threads at a time.
    ///
    /// - Parameters:
    ///   - payloads: Where the payloads are in `bytes`.
    ///   - bytes: The payloads, among other things.
    ///   - coding: Their coding.
    ///   - actions: Uninitialised memory for as many actions.
    /// - Returns: How many are initialised: those before the first that can't be decoded.
    package func decode(
        _ payloads: [Range<Int>], of bytes: UnsafeBufferPointer<UInt8>, as coding: PayloadCoding,
        into actions: UnsafeMutablePointer<Action>
    ) -> Int {
        let size = Self.shareSize
        let shareCount = (payloads.count + size - 1) / size
        return withUnsafeTemporaryAllocation(of: Int.self, capacity: shareCount) { decoded in
            // One thread has a share: its payloads, actions and count. All are done when the call returns.
            nonisolated(unsafe) let (bytes, actions, decoded) = (bytes, actions, decoded)
            DispatchQueue.concurrentPerform(iterations: shareCount) { share in
                let first = share * size
                var next = first
                while next < min(first + size, payloads.count),
                    let action = try? decodeByTape(
                        UnsafeBufferPointer(rebasing: bytes[payloads[next]]), as: coding)
                {
                    (actions + next).initialize(to: action)
                    next += 1
                }
                (decoded.baseAddress! + share).initialize(to: next - first)
            }
            var count = 0
            for (share, some) in decoded.enumerated() {
                // Something is missing before a share that does not begin at the count.
                if count == share * size {
                    count += some
                } else {
                    (actions + share * size).deinitialize(count: some)
                }
            }
            return count
        }
    }

    /// How many actions a thread decodes at a time. With fewer, waking another thread would cost more than it saves.
    package static var shareSize: Int { 16 }

    /// Decodes an action from a command line: JSON, or the bare name of an action without fields.
    ///
    /// - Parameter text: The argument on the command line.
    /// - Returns: The action.
    /// - Throws: What was expected, and where.
    package func decode(commandLine text: String) throws(CodingFailure) -> Action {
        try decode(ActionText.json(commandLine: text)[...], as: .json)
    }

    /// Improves the message of a failure that concerns the actions' names.
    private static func explain(_ failure: CodingFailure, _ tape: Tape) -> CodingFailure {
        guard let names = (Action.self as? any NamedActions.Type)?.actionNames else {
            return failure.code == .wrongType && tape.hasSeveralMembers
                ? CodingFailure(
                    .unknownAction, "expected one action, found \(tape.memberNames(of: 0))")
                : failure
        }
        let expected = "expected one of: \(names.sorted().joined(separator: ", "))"
        guard tape.nodes[0].kind == .object else {
            return CodingFailure(
                .unknownAction, "\(expected); found \(tape.kindInWords(of: 0)), no object")
        }
        let members = Array(tape.children(of: 0))
        if members.count == 1, names.contains(tape.key(of: members[0])) { return failure }
        return CodingFailure(
            .unknownAction,
            members.isEmpty
                ? "\(expected); found none" : "\(expected); found \(tape.memberNames(of: 0))")
    }
}

/// The text form of an action on a command line.
package enum ActionText {
    /// The JSON of an action. A bare name such as `increment` stands for `{"increment":{}}`; any other text
    /// must be JSON already.
    ///
    /// - Parameter text: The argument on the command line.
    /// - Returns: The JSON in UTF-8.
    package static func json(commandLine text: String) -> [UInt8] {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        let trimmed = text.utf8.drop(while: blanks.contains)
        let name = trimmed.prefix { byte in !blanks.contains(byte) }
        let isBare =
            name.first.map { isLetter($0) } == true
            && name.allSatisfy { isLetter($0) || isDigit($0) }
            && trimmed.dropFirst(name.count).allSatisfy(blanks.contains)
            && !["true", "false", "null"].contains(Substring(name))
        guard isBare else { return Array(text.utf8) }
        return Array("{\"".utf8) + name + Array("\":{}}".utf8)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte == UInt8(ascii: "_")
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

extension Tape {
    /// Whether the root is an object with more than one member.
    var hasSeveralMembers: Bool { nodes[0].kind == .object && nodes[0].count > 1 }

    /// The first few keys of an object, for a message.
    func memberNames(of index: UInt32) -> String {
        let shown = children(of: index).prefix(5).map { "\"\(key(of: $0).prefix(40))\"" }
        let rest = Int(nodes[Int(index)].count) - shown.count
        return shown.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }

    /// Checks that every member of every object that was read by key was read.
    func checkAllUsed() throws(CodingFailure) {
        for (index, node) in nodes.enumerated() where node.isOpened {
            for child in children(of: UInt32(index)) where !nodes[Int(child)].isUsed {
                let place = Self.place(path(to: UInt32(index)))
                throw CodingFailure(
                    .unknownField, "\(place)there is no field \"\(key(of: child))\"")
            }
        }
    }
}
