// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// What swift-distributed-tracing publishes, as far as the adapter uses it. It does nothing.

public enum SpanKind: Hashable, Sendable {
    case server, client, producer, consumer, `internal`
}

public enum SpanAttribute: Equatable, Sendable {
    case string(String)
}

extension SpanAttribute: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) { self = .string(value) }
}

public struct SpanAttributes: Equatable, Sendable {
    private var attributes: [String: SpanAttribute] = [:]

    public subscript(_ name: String) -> SpanAttribute? {
        get { attributes[name] }
        set { attributes[name] = newValue }
    }
}

public protocol Span: AnyObject, Sendable {
    var attributes: SpanAttributes { get set }
}

public func withSpan<T>(
    _ operationName: String, ofKind kind: SpanKind = .internal,
    isolation: isolated (any Actor)? = #isolation,
    function: String = #function, file fileID: String = #fileID, line: UInt = #line,
    _ operation: (any Span) async throws -> T
) async rethrows -> T { try await operation(NoSpan()) }

private final class NoSpan: Span {
    var attributes: SpanAttributes {
        get { SpanAttributes() }
        set {}
    }
}
