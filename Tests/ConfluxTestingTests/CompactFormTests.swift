import Conflux
import ConfluxTesting
import Testing

/// As the documentation has it.
private enum Move: CompactCodable, Sendable {
    case stop
    case go(speed: Int, to: String)

    func write(to output: inout CompactOutput) {
        switch self {
        case .stop:
            output.beginCase("stop", fields: 0)
        case .go(let speed, let place):
            output.beginCase("go", fields: 2)
            output.write(speed, forKey: "speed")
            output.write(place, forKey: "to")
        }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        if input.isCase("go", fields: 2) {
            self = .go(
                speed: try input.integer(forKey: "speed"), to: try input.string(forKey: "to"))
        } else if input.isCase("stop", fields: 0) {
            self = .stop
        } else {
            throw CompactMismatch()
        }
    }
}

/// Writes its fields in another order than `Codable`, and reads one of them incorrectly.
private struct Pair: CompactCodable, Sendable {
    var a = 1
    var b = 2
    /// Whether the fields are written in order.
    var isSorted: Bool { a == 1 }

    init(a: Int) { self.a = a }

    func write(to output: inout CompactOutput) {
        output.beginObject(fields: 2)
        if isSorted { output.write(a, forKey: "a") }
        output.write(b, forKey: "b")
        if !isSorted { output.write(a, forKey: "a") }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        try input.beginObject(fields: 2)
        a = try input.integer(forKey: "a")
        b = try input.integer(forKey: "b") + 1
    }
}

struct CompactFormTests {
    @Test func `a compact form that equals Codable's has no difference`() {
        for move in [Move.stop, .go(speed: -3, to: "home")] {
            #expect(CompactForm.difference(of: move) == nil)
        }
    }

    @Test func `bytes that differ from Codable's are reported`() {
        #expect(CompactForm.difference(of: Pair(a: 0))?.contains("by Codable") == true)
    }

    @Test func `bytes that decode to another value are reported`() {
        #expect(CompactForm.difference(of: Pair(a: 1))?.contains("another value") == true)
    }

    @Test func `a value too large for a handwritten form is reported`() {
        let move = Move.go(speed: 1, to: String(repeating: "x", count: 600))
        #expect(CompactForm.difference(of: move)?.contains("too many bytes") == true)
    }
}
