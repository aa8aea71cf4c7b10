import ConfluxCoding
import ConfluxVocabulary
import Foundation
import Synchronization
import Testing

private indirect enum Chain: Codable, Sendable {
    case end
    case link(Chain)
}

struct StackTests {
    /// Secondary threads have half a mebibyte on some systems. In a debug build, a level needs more, and
    /// with the thread sanitizer even more.
    #if DEBUG
        private static let stackBytes = dlsym(nil, "__tsan_init") == nil ? 2 << 20 : 8 << 20
    #else
        private static let stackBytes = 512 << 10
    #endif

    /// Runs a function on a thread with a small stack, and waits until it ends.
    private func onSmallStack(_ body: @escaping @Sendable () throws -> Void) throws {
        let box = Box()
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            do { try body() } catch { box.failure.withLock { $0 = error } }
            done.signal()
        }
        thread.stackSize = Self.stackBytes
        thread.start()
        #expect(done.wait(timeout: .now() + 60) == .success)
        if let failure = box.failure.withLock({ $0 }) { throw failure }
    }

    private final class Box: Sendable {
        let failure = Mutex<(any Error)?>(nil)
    }

    @Test func `the deepest value fits a small stack`() throws {
        try onSmallStack {
            let bound = CodingLimits.depthMax
            let text =
                String(repeating: "{\"a\":[", count: bound / 2) + "1"
                + String(repeating: "]}", count: bound / 2)
            let value = try JSONValue(json: text)
            #expect(value.depth == bound)
            #expect(value.description == text)
            var merged = JSONValue.null
            merged.merge(patch: value)
            #expect(merged == value && merged.hashValue == value.hashValue)
            #expect(merged.firstDifference(from: value) == nil)
            for coding in PayloadCoding.allCases {
                let coder = ActionCoder<JSONValue>()
                #expect(try coder.decode(coder.encode(value, as: coding)[...], as: coding) == value)
            }
        }
    }

    @Test func `the deepest typed value fits a small stack`() throws {
        try onSmallStack {
            var chain = Chain.end
            for _ in 0..<CodingLimits.typedDepthMax / 2 - 1 { chain = .link(chain) }
            for coding in PayloadCoding.allCases {
                let coder = ActionCoder<Chain>()
                let bytes = try coder.encode(chain, as: coding)
                #expect(try coder.encode(coder.decode(bytes[...], as: coding), as: coding) == bytes)
            }
        }
    }
}
