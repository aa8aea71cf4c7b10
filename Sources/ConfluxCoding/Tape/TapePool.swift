import Synchronization

/// Keeps a few tapes for the next use, so that coding an action allocates almost nothing.
///
/// You can use it on any thread. No lock is held while a tape is in use: each use has its own tape.
final class TapePool: Sendable {
    private static let kept = 4
    private let tapes = Mutex<[Tape]>([])

    /// Calls the function with an empty tape.
    func withTape<Result>(
        _ body: (Tape) throws(CodingFailure) -> Result
    ) throws(CodingFailure) -> Result {
        var tape = tapes.withLock { $0.popLast() } ?? Tape()
        tape.reset()
        defer {
            // Code that kept an encoder or a decoder also keeps its tape, and must not see the next use of
            // it.
            if isKnownUniquelyReferenced(&tape), tape.isWorthKeeping {
                let returned = tape
                tapes.withLock { if $0.count < Self.kept { $0.append(returned) } }
            }
        }
        return try body(tape)
    }
}

extension Tape {
    /// Encodes a value, as the root.
    func encode(_ value: some Encodable) throws(CodingFailure) {
        do {
            try TapeEncoder(tape: self, node: 0, depth: 0).encode(value)
        } catch let failure as CodingFailure {
            throw failure
        } catch let EncodingError.invalidValue(_, context) {
            throw CodingFailure(
                .notEncodable, Self.place(context.codingPath) + context.debugDescription)
        } catch {
            throw CodingFailure(
                .notEncodable, "\(type(of: value)) failed to encode itself: \(error)")
        }
        if let misuse { throw CodingFailure(.notEncodable, misuse) }
        if nodes[0].kind == .unset {
            throw CodingFailure(.notEncodable, "\(type(of: value)) encoded nothing")
        }
    }

    /// Decodes a value from the root.
    func decode<Value: Decodable>(_ type: Value.Type) throws(CodingFailure) -> Value {
        do {
            return try TapeDecoder(tape: self, node: 0, depth: 0).decode(type)
        } catch let failure as CodingFailure {
            throw failure
        } catch let error as DecodingError {
            throw Self.failure(error)
        } catch {
            throw CodingFailure(.invalidValue, "\(error)")
        }
    }

    private static func failure(_ error: DecodingError) -> CodingFailure {
        switch error {
        case .typeMismatch(_, let context):
            CodingFailure(.wrongType, place(context.codingPath) + words(of: context))
        case .valueNotFound(_, let context):
            CodingFailure(.missingField, place(context.codingPath) + words(of: context))
        case .keyNotFound(let key, let context):
            CodingFailure(
                .missingField,
                place(context.codingPath) + "expected a field \"\(key.stringValue)\"")
        case .dataCorrupted(let context):
            CodingFailure(.invalidValue, place(context.codingPath) + words(of: context))
        @unknown default:
            CodingFailure(.invalidValue, "\(error)")
        }
    }

    /// What is wrong, without the full stop of the standard library's own messages.
    private static func words(of context: DecodingError.Context) -> String {
        let text = context.debugDescription
        return text.hasSuffix(".") ? String(text.dropLast()) : text
    }

    /// The beginning of a message about the value at a path.
    static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "" : "at \(JSONPointer(tokens: path.map(\.stringValue))): "
    }
}
