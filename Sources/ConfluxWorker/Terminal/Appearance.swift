import Foundation

/// The appearance of text that is written to a descriptor: for people on a terminal, and plain in a pipe or a file.
///
/// It alone decides about colours, about lines that are overwritten, and about JSON on several lines.
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

    /// The appearance without a terminal.
    package static let plain = Appearance(descriptor: nil, variables: [:])
    /// The appearance of standard error.
    package static let ofErrors = Appearance(of: STDERR_FILENO)

    private let descriptor: Int32?
    /// Whether it is a terminal, so that a person reads the text. Then JSON may take several lines.
    package var isTerminal: Bool { descriptor != nil }
    /// Whether it understands escape sequences, so that a line can be overwritten.
    package let canRedraw: Bool
    /// Whether text has colours.
    package let hasColours: Bool

    /// Derives the appearance from a descriptor and the environment.
    ///
    /// - Parameters:
    ///   - descriptor: Where the text goes.
    ///   - variables: If `NO_COLOR` is not empty, there are no colours. If `TERM` is missing or `dumb`, the terminal
    ///     understands no escape sequences.
    package init(
        of descriptor: Int32, variables: [String: String] = ProcessInput.variables
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
    package var columns: Int { size.map { Int($0.ws_col) } ?? 80 }

    /// How many lines there are; 24 if the terminal does not say.
    package var rows: Int { size.map { Int($0.ws_row) } ?? 24 }

    private var size: winsize? {
        var size = winsize()
        guard let descriptor, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0,
            size.ws_row > 0
        else { return nil }
        return size
    }

    /// A text in a style, if there are colours; otherwise the text as it is.
    package func paint(_ text: String, _ style: Style) -> String {
        hasColours ? "\(Self.begin(style))\(text)\(Self.end)" : text
    }

    /// The bytes of a text in a style, if there are colours; otherwise the bytes as they are.
    func paint(_ text: [UInt8], _ style: Style) -> [UInt8] {
        hasColours ? Array(Self.begin(style).utf8) + text + Array(Self.end.utf8) : text
    }

    private static func begin(_ style: Style) -> String { "\u{1B}[\(style.rawValue)m" }
    private static let end = "\u{1B}[0m"
}
