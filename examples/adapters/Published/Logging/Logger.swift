// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// What swift-log publishes, as far as the adapter uses it. It does nothing.

public struct Logger: Sendable {
    public enum Level: String, Codable, CaseIterable, Sendable {
        case trace, debug, info, notice, warning, error, critical
    }

    public struct Message: ExpressibleByStringLiteral, ExpressibleByStringInterpolation, Sendable {
        public init(stringLiteral value: String) {}
    }

    public typealias Metadata = [String: String]

    public init(label: String) {}

    public func log(
        level: Logger.Level, _ message: @autoclosure () -> Logger.Message,
        metadata: @autoclosure () -> Logger.Metadata? = nil,
        source: @autoclosure () -> String? = nil,
        file: String = #fileID, function: String = #function, line: UInt = #line
    ) {}
}
