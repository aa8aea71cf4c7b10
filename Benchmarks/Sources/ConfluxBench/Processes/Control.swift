import Foundation

/// A started process's side: what it is told on its standard input, and what it tells.
enum Control {
    private static let start = DispatchSemaphore(value: 0)
    private static let (orders, giving) = AsyncStream<Order>.makeStream()

    /// Begins to listen. The process ends with the one that started it.
    static func begin() {
        Thread {
            while let line = readLine() {
                switch line {
                case "go": start.signal()
                case "usage": tell(.usage(usedProcessorNanoseconds()))
                case "memory":
                    let (now, most) = usedMemory()
                    tell(.memory(now: now, most: most))
                default: take(line)
                }
            }
            exit(0)
        }.start()
    }

    private static func take(_ line: String) {
        do {
            giving.yield(try JSONDecoder().decode(Order.self, from: Data(line.utf8)))
        } catch {
            tell(.failed("told \(line), which means nothing: \(error)"))
        }
    }

    /// Does what is ordered, one after the other, and tells what came of it, for as long as the
    /// process lives.
    static func obey(_ perform: (Order) async throws -> Report) async throws {
        for await order in orders { tell(try await perform(order)) }
    }

    /// Says that all is ready, and waits for the word to begin.
    static func awaitStart() {
        tell(.ready)
        start.wait()
    }

    /// Tells the starting process.
    static func tell(_ report: Report) {
        do {
            let line = try JSONEncoder().encode(report) + Data("\n".utf8)
            try FileHandle.standardOutput.write(contentsOf: line)
        } catch {
            exit(1)  // nobody listens any more
        }
    }
}
