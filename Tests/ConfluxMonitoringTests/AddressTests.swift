import Foundation
import Testing

@testable import ConfluxMonitoring

/// Where metrics may be served, and with which token.
struct AddressTests {
    @Test(arguments: [
        ("127.0.0.1:7480", true), ("127.8.9.1:0", true), ("localhost:7480", true),
        ("[::1]:7480", true), ("0.0.0.0:7480", false), ("10.0.0.5:80", false), ("[::]:1", false),
        ("[fe80::1]:1", false), ("[::ffff:127.0.0.1]:1", false),
    ])
    func `loopback addresses are distinguished from those that others can reach`(
        text: String, isLocal: Bool
    )
        throws
    {
        #expect(try HTTPAddress(text).isLocal == isLocal)
    }

    @Test(arguments: [
        "", "7480", ":7480", "*:7480", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
        "127.0.0.1:-1", "127.0.0.1:+1", "::1:7480", "[::1]", "[127.0.0.1]:1", "example.com:7480",
        "http://127.0.0.1:7480", "127.0.0.1:7480/metrics", "127.1:7480",
    ])
    func `text that is not an address is refused with an example`(text: String) {
        let error = #expect(throws: HTTPError.self) { try HTTPAddress(text) }
        #expect(error?.code == .invalidAddress)
        #expect(error?.message.contains("127.0.0.1:7480") == true)
    }

    @Test func `a token has 16 to 256 printable characters`() {
        #expect(BearerToken(String(repeating: "x", count: 16)) != nil)
        #expect(BearerToken(String(repeating: "x", count: 256)) != nil)
        #expect(BearerToken(String(repeating: "x", count: 15)) == nil)
        #expect(BearerToken(String(repeating: "x", count: 257)) == nil)
        #expect(BearerToken("with a space in it") == nil)
        #expect(BearerToken("with-an-ümlaut-in-it") == nil)
    }

    @Test func `only a token's exact characters are admitted`() throws {
        let token = try #require(BearerToken("0123456789abcdef"))
        for header in ["Bearer 0123456789abcdef", "bearer 0123456789abcdef"] {
            #expect(token.admits(header))
        }
        for header in [
            nil, "", "Bearer", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef",
            "Bearer 0123456789abcdeF", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdef ",
        ] {
            #expect(!token.admits(header), "\(header ?? "none")")
        }
    }

    @Test func `a token's file has one line, and only its owner may read it`() throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)").path
        defer { unlink(path) }
        func refusal(_ text: String, mode: mode_t = 0o600) throws -> String? {
            try Data(text.utf8).write(to: URL(filePath: path))
            chmod(path, mode)
            do throws(HTTPError) {
                _ = try BearerToken(file: path)
                return nil
            } catch {
                #expect(error.code == .invalidToken)
                return error.message
            }
        }
        #expect(try refusal("0123456789abcdef\n") == nil)
        #expect(try refusal("0123456789abcdef") == nil)
        // As an editor of another system saves it.
        #expect(try refusal("\u{FEFF}0123456789abcdef\r\n") == nil)
        for text in ["", "\n", "short\n", "0123456789abcdef\n\n", "\u{FEFF}\n"] {
            #expect(try refusal(text)?.contains("does not hold a token") == true)
        }
        // As an editor of another system saves it, in UTF-16.
        try Data([0xFF, 0xFE, 0x61, 0x00]).write(to: URL(filePath: path))
        let other = #expect(throws: HTTPError.self) { try BearerToken(file: path) }
        #expect(other?.message.contains("in line 1, ") == true, "\(String(describing: other))")
        #expect(
            try refusal(String(repeating: "x", count: 4_096))?.contains("does not hold a token")
                == true)
        #expect(try refusal("0123456789abcdef\n", mode: 0o640)?.contains("chmod 600") == true)
        unlink(path)
        let missing = #expect(throws: HTTPError.self) { try BearerToken(file: path) }
        #expect(missing?.message.contains("can't be read") == true)
    }
}
