import ConfluxZeroMQ
import Testing

@Suite struct EndpointTests {
    @Test(arguments: [
        "tcp://127.0.0.1:7400", "tcp://localhost:1", "tcp://a-b.example_1.org:65535",
        "tcp://[::1]:7400", "tcp://[fe80::1%eth0]:7400", "tcp://*:7400", "ipc:///run/feed",
        "ipc:///\u{301}/feed",
    ])
    func `an endpoint is written as it was read`(_ text: String) throws {
        #expect(try Endpoint(text).description == text)
    }

    @Test func `a star for the port lets the system choose`() throws {
        let endpoint = try Endpoint("tcp://*:*")
        #expect(endpoint.transport == .tcp(host: "*", port: 0))
        #expect(endpoint.isWildcard)
        #expect(try Endpoint("tcp://host:0").isWildcard)
        #expect(try !Endpoint("tcp://host:1").isWildcard)
        #expect(try !Endpoint("ipc:///x").isWildcard)
    }

    @Test func `a host and a port are an address of TCP`() throws {
        for text in ["localhost:7400", "10.0.0.5:7400", "[::1]:7400", "*:0"] {
            #expect(try Endpoint(text) == Endpoint("tcp://\(text)"))
        }
        #expect(
            try Endpoint.list("a:1,tcp://b:2").map(\.description) == ["tcp://a:1", "tcp://b:2"])
    }

    @Test func `a host and a port make an endpoint`() throws {
        #expect(try Endpoint(host: "::1", port: 5).description == "tcp://[::1]:5")
        #expect(try Endpoint(host: "node", port: 5).port == 5)
        #expect(code { _ = try Endpoint(host: "a b", port: 5) } == .invalidEndpoint)
    }

    @Test(arguments: [
        ("", "write host:port, tcp://host:port"), ("localhost", "write host:port"),
        ("localhost:", "from 0 to 65535"), ("::1:7400", "stands in brackets"),
        ("http://x:1", "write host:port"), ("tcp://", "the port is missing"),
        ("tcp://host", "the port is missing"), ("tcp://:7400", "the host is a name"),
        ("tcp://host:", "from 0 to 65535"), ("tcp://host:65536", "from 0 to 65535"),
        ("tcp://host:-1", "from 0 to 65535"), ("tcp://host:+1", "from 0 to 65535"),
        ("tcp://ho st:1", "the host is a name"), ("tcp://::1:7400", "stands in brackets"),
        ("tcp://[::1:7400", "bracket is not closed"),
        ("tcp://[host]:1", "IPv6 address is expected"),
        ("tcp://[]:1", "IPv6 address is expected"), ("ipc://", "1 to 103 bytes"),
        ("inproc://a", "tcp://host:port or ipc:///path"),
        ("ipc://relative", "must begin with /"), ("ipc://./relative", "must begin with /"),
        ("ipc://@abstract", "libzmq's @name"), ("ipc://*", "must begin with /"),
        ("tcp://a;b:1", "the host is a name"),
        ("tcp://\(String(repeating: "h", count: 300)):1", "more than 253 bytes"),
        ("ipc://\(String(repeating: "p", count: 104))", "1 to 103 bytes"),
    ])
    func `an invalid endpoint is refused with a reason`(_ text: String, _ reason: String) {
        do throws(ZeroMQError) {
            let endpoint = try Endpoint(text)
            Issue.record("\(endpoint) was accepted")
        } catch {
            #expect(error.code == .invalidEndpoint)
            #expect(error.message.contains(reason), "\(error.message)")
            #expect(error.message.count < 300)
        }
    }

    @Test(
        arguments: [
            ("tcp://*:7401", "::1", "tcp://[::1]:7401"),
            ("tcp://*:7401", "example.org", "tcp://example.org:7401"),
            ("tcp://10.0.0.1:7401", "::1", "tcp://10.0.0.1:7401"),
            ("ipc:///feed", nil, "ipc:///feed"), ("tcp://*:7401", nil, "tcp://127.0.0.1:7401"),
        ] as [(String, String?, String)])
    func `a host replaces a star, in brackets where needed`(
        announced: String, host: String?, expected: String
    ) throws {
        #expect(try Endpoint(announced).replacingWildcard(with: host).description == expected)
    }
}
