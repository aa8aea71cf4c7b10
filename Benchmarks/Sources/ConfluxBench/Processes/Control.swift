import Foundation

/// The side of a started process: the orders on its standard input, and its reports.
enum Control {
    private static let start = DispatchSemaphore(value: 0)
    private static let (orders, giving) = AsyncStream<Order>.makeStream()

    /// Begins to read orders. The process ends together with the one that started it.
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

    /// Carries out orders one after the other, and reports the result of each, for as long as the
    /// process lives.
    static func obey(_ perform: (Order) async throws -> Report) async throws {
        for await order in orders { tell(try await perform(order)) }
    }

    /// Reports that everything is ready, and waits for the order to begin.
    static func awaitStart() {
        tell(.ready)
        start.wait()
    }

    /// Sends a report to the process that started this one.
    static func tell(_ report: Report) {
        do {
            let line = try JSONEncoder().encode(report) + Data("\n".utf8)
            try FileHandle.standardOutput.write(contentsOf: line)
        } catch {
            exit(1)  // nobody reads any more
        }
    }
}
