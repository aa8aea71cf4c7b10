import Foundation

/// A started process's side: what it is told on its standard input, and what it tells.
enum Control {
    private static let start = DispatchSemaphore(value: 0)

    /// Begins to listen. The process ends with the one that started it.
    static func begin() {
        Thread {
            while let line = readLine() {
                switch line {
                case "go": start.signal()
                case "usage": tell(.usage(usedProcessorNanoseconds()))
                default: tell(.failed("told \(line), which means nothing"))
                }
            }
            exit(0)
        }.start()
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
