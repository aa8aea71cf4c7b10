import CConsolePage
import ConfluxMonitoring
import ConfluxVocabulary

/// The files of the console's page. They are part of the program, and have no data: what the page shows comes from the
/// API, with the token if one is needed. So they are served to everybody who can reach the address.
enum ConsolePage {
    /// What a browser lets the page do: load its own files, ask its own origin, and nothing else.
    static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
        "img-src 'self' data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ].joined(separator: "; ")

    private static let types = [
        "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "md": "text/markdown; charset=utf-8",
        "svg": "image/svg+xml",
    ]

    private static let files: [String: (type: String, bytes: [UInt8])] = {
        var files: [String: (type: String, bytes: [UInt8])] = [:]
        var index = 0
        while let file = conflux_console_file_at(index) {
            index += 1
            let path = (try? String(utf8CString: file.pointee.path)) ?? ""
            let ending = path.split(separator: ".").last.map(String.init) ?? "html"
            files[path] = (
                types[ending] ?? "text/html; charset=utf-8",
                Array(UnsafeBufferPointer(start: file.pointee.bytes, count: file.pointee.count))
            )
        }
        return files
    }()

    /// Whether a path belongs to the page.
    static func has(_ path: String) -> Bool { path == "/" || path.hasPrefix("/console/") }

    static func answer(_ head: HTTPHead) -> HTTPAnswer {
        guard head.method == "GET" || head.method == "HEAD" else {
            return Problem(
                405, "methodNotAllowed", "The methods of this path are GET, HEAD.",
                headers: [("Allow", "GET, HEAD")]
            ).answer
        }
        guard let file = files[head.path] else {
            return Problem(404, "unknownPath", "There is nothing at this path. The page is at /.")
                .answer
        }
        return HTTPAnswer(
            status: 200, type: file.type,
            headers: [
                ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
            ], body: .bytes(file.bytes))
    }
}
