import Foundation
import Spawning

/// A run of the tool on a terminal: its input and its outputs are a pseudo terminal.
final class Terminal {
    private let process = Process()
    private let master: FileHandle
    private var seen = ""

    /// Starts the tool on a terminal of this height; nil if the terminal does not say.
    init(_ arguments: [String], rows: UInt16? = nil, variables: [String: String] = [:]) throws {
        let (descriptor, path) = try Self.open()
        master = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let slave = Foundation.open(path, O_RDWR | O_NOCTTY)
        guard slave >= 0 else { throw Failure("\(path) can't be opened") }
        let terminal = FileHandle(fileDescriptor: slave, closeOnDealloc: true)
        if let rows {
            var size = winsize(ws_row: rows, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
            guard ioctl(slave, UInt(TIOCSWINSZ), &size) == 0 else {
                throw Failure("the terminal takes no size")
            }
        }
        process.executableURL = URL(fileURLWithPath: Tool.path)
        process.arguments = arguments
        process.environment = Tool.environment.merging(variables) { $1 }
        process.standardInput = terminal
        process.standardOutput = terminal
        process.standardError = terminal
        try process.run()
        try terminal.close()
    }

    /// Makes a pseudo terminal.
    ///
    /// - Returns: The descriptor of its master, and the path of its slave.
    private static func open() throws -> (descriptor: Int32, path: String) {
        #if canImport(Glibc)
            // Swift can't see glibc's own functions. These are the calls that they make. See tty_ioctl(4).
            let (getNumber, setLock) = (UInt(0x8004_5430), UInt(0x4004_5431))
            let descriptor = Foundation.open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            var (number, isLocked) = (Int32(0), Int32(0))
            guard descriptor >= 0, ioctl(descriptor, setLock, &isLocked) == 0,
                ioctl(descriptor, getNumber, &number) == 0
            else { throw Failure("no pseudo terminal: \(String(cString: strerror(errno)))") }
            return (descriptor, "/dev/pts/\(number)")
        #else
            let descriptor = posix_openpt(O_RDWR | O_NOCTTY)
            guard descriptor >= 0, grantpt(descriptor) == 0, unlockpt(descriptor) == 0,
                let name = ptsname(descriptor)
            else { throw Failure("no pseudo terminal: \(String(cString: strerror(errno)))") }
            return (descriptor, String(cString: name))
        #endif
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    /// Types a text.
    func type(_ text: String) throws { try master.write(contentsOf: Data(text.utf8)) }

    /// Waits until a text has been shown.
    func wait(for text: String, within limit: Duration = .seconds(30)) throws {
        try read(within: limit, until: "\"\(text)\"") { seen.contains(text) }
    }

    /// Waits until the process has ended.
    ///
    /// - Returns: Its exit code, and everything that was shown.
    func end(within limit: Duration = .seconds(30)) throws -> (code: Int32, shown: String) {
        try read(within: limit, until: "its end") { !process.isRunning }
        return (process.terminationStatus, seen)
    }

    /// Sends SIGINT to the process.
    func interrupt() { signal(SIGINT) }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    private func read(within limit: Duration, until what: String, _ isOver: () -> Bool) throws {
        let deadline = ContinuousClock.now + limit
        while !isOver() {
            guard ContinuousClock.now < deadline else {
                throw Failure("the terminal shows no \(what): \(seen)")
            }
            var item = pollfd(fd: master.fileDescriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&item, 1, 50) > 0, item.revents & Int16(POLLIN) != 0 else { continue }
            seen += String(decoding: master.availableData, as: UTF8.self)
        }
    }
}
