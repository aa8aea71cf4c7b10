import Foundation

/// How text looks on a descriptor: for people on a terminal, and plain in a pipe or a file.
///
/// Only this type decides about colours, redrawn lines, and JSON on several lines.
package struct Appearance: Sendable {
    /// The tool's colours and weights, as ANSI's numbers.
    package enum Style: Int, Sendable {
        case bold = 1
        case faint = 2
        case red = 31
        case green = 32
        case yellow = 33
        case cyan = 36
    }

    /// The appearance where there is no terminal.
    package static let plain = Appearance(descriptor: nil, variables: [:])
    /// The appearance of standard error.
    package static let ofErrors = Appearance(of: STDERR_FILENO)

    private let descriptor: Int32?
    /// Whether a person sees the text. If so, JSON may take several lines.
    package var isTerminal: Bool { descriptor != nil }
    /// Whether the terminal understands escape sequences, so that a line can be redrawn.
    package let canRedraw: Bool
    /// Whether text has colours.
    package let hasColours: Bool

    /// Checks a descriptor and the environment.
    ///
    /// - Parameters:
    ///   - descriptor: Where the text goes.
    ///   - variables: `NO_COLOR` removes the colours if it is not empty. If `TERM` is missing or
    ///     `dumb`, the terminal understands no escape sequences.
    package init(
        of descriptor: Int32, variables: [String: String] = ProcessInfo.processInfo.environment
    ) {
        self.init(
            descriptor: isatty(descriptor) == 1 ? descriptor : nil, variables: variables)
    }

    private init(descriptor: Int32?, variables: [String: String]) {
        self.descriptor = descriptor
        let terminal = variables["TERM"] ?? ""
        canRedraw = descriptor != nil && !terminal.isEmpty && terminal != "dumb"
        hasColours = canRedraw && (variables["NO_COLOR"] ?? "").isEmpty
    }

    /// How many characters a line has; 80 if the terminal does not say.
    package var columns: Int {
        var size = winsize()
        guard let descriptor, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
        else { return 80 }
        return Int(size.ws_col)
    }

    /// The text in a style if there are colours, otherwise as it is.
    package func paint(_ text: String, _ style: Style) -> String {
        hasColours ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }
}
