import ConfluxWorker
import Foundation
import Synchronization

/// The terminal as a screen of its own: what it showed comes back when the screen ends.
final class Screen: Sendable {
    let appearance = Appearance(of: STDOUT_FILENO)
    private let former: termios
    private let isOver = Mutex(false)

    /// Takes the terminal.
    ///
    /// - Throws: Where there is none.
    init() throws(CommandFailure) {
        var settings = termios()
        guard Appearance(of: STDIN_FILENO).isTerminal, appearance.canRedraw,
            tcgetattr(STDIN_FILENO, &settings) == 0
        else {
            throw CommandFailure(
                .usage, code: "noTerminal",
                "conflux top needs a terminal, and TERM to name it. Use conflux status --watch --json in a pipe."
            )
        }
        former = settings
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        Self.write("\u{1B}[?1049h\u{1B}[?25l")
    }

    /// How large it is; 80 by 24 where the terminal does not say.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
        else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Shows lines in place of what was shown.
    func show(_ lines: [String]) {
        isOver.withLock { isOver in
            guard !isOver else { return }
            Self.write(
                "\u{1B}[H" + lines.map { "\($0)\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
        }
    }

    /// Gives the terminal back. Only the first call does something.
    func end() {
        isOver.withLock { isOver in
            guard !isOver else { return }
            isOver = true
            Self.write("\u{1B}[?25h\u{1B}[?1049l")
            var former = former
            tcsetattr(STDIN_FILENO, TCSANOW, &former)
        }
    }

    private static func write(_ text: String) {
        // Where nobody sees the terminal any more, the command is told to end by the system.
        _ = StandardOutput.write(Array(text.utf8), to: STDOUT_FILENO)
    }
}
