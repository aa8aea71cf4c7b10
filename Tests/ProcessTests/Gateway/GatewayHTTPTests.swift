import CZeroMQ
import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// The API of a gateway over HTTP.
    struct GatewayHTTPTests {
        private static let set = #"{"set":{"at":"/theme","value":"dark"}}"#

        @Test func `states are read, and actions dispatched, by HTTP as by ZeroMQ`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let http = gateway.http
                let sequence = try await http.dispatch(Self.set, to: "document/prefs")
                let state = try await http.ask("GET", "/stores/document/prefs?atLeast=\(sequence)")
                #expect(state.type == "application/json")
                #expect(state.json[key: "state"] == ["theme": "dark"])
                #expect(state.json[key: "sequence"]?.number == sequence)
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                #expect(try await peer.ask(#"{"get":"document/prefs"}"#) == state.json)
                let stores = try await http.ask("GET", "/stores").json[key: "stores"]?.array
                #expect(stores?.count == 2)
                let actions = try await http.ask("GET", "/stores/counter/shared/actions").json
                #expect(actions[key: "actions"]?[key: "add"] == ["amount": "integer"])
                let document = try await http.ask("GET", "/openapi.json")
                for path in ["", "/events", "/actions"] {
                    #expect(
                        document.json[key: "paths"]?[key: "/api/v1/stores/document/prefs\(path)"]
                            != nil)
                }
            }
        }

        @Test func `a key over HTTP is that of a socket, and applies an action once`() async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let add = #"{"add":{"amount":5}}"#
                let first = try await gateway.http.dispatch(add, to: "counter/shared", key: "k1")
                #expect(
                    try await gateway.http.dispatch(add, to: "counter/shared", key: "k1") == first)
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let again = try await peer.ask(
                    #"{"store":"counter","dispatch":\#(add),"key":"k1"}"#)
                #expect(again[key: "receipt"]?[key: "sequence"]?.number == first)
                let state = try await gateway.http.ask("GET", "/stores/counter/shared").json
                #expect(state[key: "state"] == ["count": 5])
            }
        }

        @Test func `of two that read the same version, one changes the store`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let http = gateway.http
                let path = "/stores/document/prefs"
                _ = try await http.dispatch(Self.set, to: "document/prefs")
                let read = try await http.ask("GET", path)
                let tag = try #require(read.tag)
                #expect(tag == read.json[key: "version"]?.description)
                let first = try await http.ask(
                    "POST", "\(path)/actions", body: Self.set, ["If-Match": tag])
                #expect(first.status == 200)
                let second = try await http.ask(
                    "POST", "\(path)/actions", body: Self.set, ["If-Match": tag])
                #expect(second.status == 412 && second.code == "conflict")
                // The answer has the version that holds now, as the socket and the tool understand it, too.
                let present = try #require(second.json[key: "version"]?.string)
                #expect(second.tag == "\"\(present)\"")
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                #expect(
                    try await peer.ask(#"{"get":"document/prefs"}"#)[key: "version"]?.string
                        == present)
                let asked = try await peer.ask(
                    #"{"store":"document/prefs","dispatch":\#(Self.set),"ifUnchangedSince":"\#(present)"}"#
                )
                let number = try #require(asked[key: "receipt"]?[key: "sequence"]?.number)
                let late = try await peer.ask(
                    #"{"store":"document/prefs","dispatch":\#(Self.set),"ifUnchangedSince":"\#(present)"}"#
                )
                #expect(late[key: "error"]?[key: "code"] == "conflict")
                let told = try await site.run(
                    "dispatch", "document/prefs", Self.set, "--if-unchanged-since", present,
                    "--json",
                    "--connect", sequencer.address)
                #expect(told.end == .exited(80))
                let error = try object(told.output.first ?? "")[key: "error"]
                #expect(error?[key: "code"] == "conflict")
                let version = try #require(error?[key: "version"]?.string)
                for version in [version, "\(number)"] {
                    let done = try await site.run(
                        "dispatch", "document/prefs", Self.set, "--if-unchanged-since", version,
                        "--connect", sequencer.address)
                    #expect(done.end == .exited(version == "\(number)" ? 80 : 0), "\(done.message)")
                }
                // Any version will do.
                let any = try await http.ask(
                    "POST", "\(path)/actions", body: Self.set, ["If-Match": "*"])
                #expect(any.status == 200)
                // A key repeats the answer, whatever has changed since.
                let now = try #require(try await http.ask("GET", path).tag)
                let keyed = ["If-Match": now, "Idempotency-Key": "k1"]
                var receipts: [UInt64?] = []
                for _ in 1...2 {
                    let answer = try await http.ask(
                        "POST", "\(path)/actions", body: Self.set, keyed)
                    receipts.append(answer.json[key: "receipt"]?[key: "sequence"]?.number)
                }
                #expect(receipts[0] != nil && receipts[0] == receipts[1])
            }
        }

        @Test func `a condition is for one action to one store`() async throws {
            try await withSite { site in
                for arguments in [
                    ["counter/*", "increment"], ["counter", "-"], ["counter", "--file", "none"],
                ] {
                    let told = try await Tool.outcome(
                        of: try site.start(
                            ["dispatch"] + arguments + ["--if-unchanged-since", "3"]))
                    #expect(told.end == .exited(64), "\(arguments)")
                    #expect(told.message.contains("--if-unchanged-since is"), "\(told.message)")
                }
                let told = try await site.run(
                    "dispatch", "counter", "increment", "--if-unchanged-since", "three")
                #expect(told.end == .exited(64) && told.message.contains("such as 17"))
            }
        }

        @Test func `whatever is wrong with a request is a problem that says what to do`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let prefs = "/stores/document/prefs"
                let cases: [(String, String, String?, [String: String], Int, String)] = [
                    ("GET", "/stores/document/none", nil, [:], 404, "unknownStore"),
                    ("GET", "/stores/Document/prefs", nil, [:], 404, "unknownStore"),
                    ("GET", "/nothing", nil, [:], 404, "unknownPath"),
                    ("GET", "\(prefs)?atLeast=99999", nil, [:], 409, "notReached"),
                    ("GET", "\(prefs)?atLeast=-1", nil, [:], 400, "invalidRequest"),
                    ("GET", "\(prefs)?timeout=1", nil, [:], 400, "invalidRequest"),
                    ("GET", "\(prefs)?since=1", nil, [:], 400, "invalidRequest"),
                    ("GET", "\(prefs)?timeout=200&timeout=200", nil, [:], 400, "invalidRequest"),
                    ("GET", "\(prefs)/events?as=words", nil, [:], 400, "invalidRequest"),
                    ("DELETE", prefs, nil, [:], 405, "methodNotAllowed"),
                    ("POST", "\(prefs)/actions", "{", [:], 400, "invalidRequest"),
                    ("POST", "\(prefs)/actions", #"{"sat":{}}"#, [:], 422, "invalidAction"),
                    (
                        "POST", "\(prefs)/actions", #"{"remove":{"at":"/none"}}"#, [:], 409,
                        "refused"
                    ),
                    (
                        "POST", "\(prefs)/actions", Self.set, ["Content-Type": "text/plain"], 415,
                        "unsupportedMediaType"
                    ),
                    ("POST", "\(prefs)/actions", Self.set, ["If-Match": "1"], 412, "conflict"),
                    (
                        "POST", "\(prefs)/actions", Self.set, ["If-Match": #"W/"17""#], 400,
                        "invalidRequest"
                    ),
                    (
                        "POST", "\(prefs)/actions", Self.set,
                        ["Idempotency-Key": String(repeating: "x", count: 129)], 400,
                        "invalidRequest"
                    ),
                ]
                for (method, path, body, headers, status, code) in cases {
                    let answer = try await gateway.http.ask(method, path, body: body, headers)
                    let what = "\(method) \(path) \(headers)"
                    #expect(answer.status == status, "\(what)")
                    #expect(answer.type == "application/problem+json", "\(what)")
                    #expect(answer.code == code, "\(what)")
                    #expect(answer.json[key: "status"]?.number == UInt64(status), "\(what)")
                    #expect(answer.json[key: "detail"]?.string?.isEmpty == false, "\(what)")
                }
                // Nothing of it was applied.
                let state = try await gateway.http.ask("GET", prefs).json
                #expect(state[key: "state"] == [:])
            }
        }

        @Test func `events are the state, each change, and what was missed`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                let gateway = try await site.gateway(of: sequencer)
                let http = gateway.http
                let path = "/stores/counter/shared/events"
                let reader = EventReader(try http.request("GET", path))
                let state = try #require(try await reader.next())
                #expect(state.name == "state" && state.body == #"{"count":0}"#)
                let first = try await http.dispatch("{\"increment\":{}}", to: "counter/shared")
                let change = try #require(try await reader.next())
                #expect(change.name == "change" && change.sequence == first)
                #expect(change.previous == state.sequence)
                #expect(change.body == #"[{"op":"replace","path":"/count","value":1}]"#)
                reader.end()
                // Meanwhile it misses two.
                let missed = [
                    try await http.dispatch("{\"increment\":{}}", to: "counter/shared"),
                    try await http.dispatch("{\"increment\":{}}", to: "counter/shared"),
                ]
                let requests = [
                    try http.request("GET", path, ["Last-Event-ID": change.id]),
                    try http.request("GET", "\(path)?since=\(first)"),
                    try http.request("GET", "\(path)?since=\(first)&as=actions"),
                ]
                for request in requests {
                    let again = EventReader(request)
                    var previous = first
                    for sequence in missed {
                        let event = try #require(try await again.next())
                        #expect(event.sequence == sequence && event.previous == previous)
                        previous = sequence
                    }
                    again.end()
                }
                // An id of a log or an epoch that is not known here gets the state.
                let number = try #require(change.id.split(separator: "-").last)
                for id in [
                    "0123456789abcdef0123456789abcdef-1-\(number)", "garbage",
                    "\(change.id.split(separator: "-")[0])-1-\(number)",
                ] {
                    let other = EventReader(
                        try http.request("GET", path, ["Last-Event-ID": id]))
                    #expect(try await other.next()?.name == "state", "\(id)")
                    other.end()
                }
            }
        }

        @Test func `readers of events see the end of a gateway and of a store`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let path = "/stores/counter/shared/events"
                let dropping = EventReader(
                    try gateway.http.request("GET", "/stores/document/prefs/events"))
                #expect(try await dropping.next()?.name == "state")
                let outcome = try await site.run(
                    "drop", "document/prefs", "--yes", "--connect", sequencer.address)
                #expect(outcome.end == .exited(0))
                let ended = try #require(try await dropping.next())
                #expect(ended.name == "ended" && ended.body.contains("dropped"))
                let gone = try await gateway.http.ask("GET", "/stores/document/prefs")
                #expect(gone.status == 410 && gone.code == "storeEnded")
                let reader = EventReader(try gateway.http.request("GET", path))
                #expect(try await reader.next()?.name == "state")
                gateway.child.signal(SIGTERM)
                #expect(try await gateway.child.end() == .exited(0))
                #expect(try await reader.next() == nil)
            }
        }

        @Test func `the API needs the token if there is one, and a token if there are keys`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let token = "0123456789abcdef"
                let file = site.path("token")
                try Data("\(token)\n".utf8).write(to: URL(filePath: file))
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: file)
                let open = try await site.gateway(of: sequencer, options: ["--http-token", file])
                let none = try await open.http.ask("GET", "/stores")
                #expect(none.status == 401 && none.code == "notPermitted")
                var http = open.http
                http.token = token
                #expect(try await http.ask("GET", "/stores").status == 200)
                let keygen = try await site.run("keygen", site.path("gateway"))
                #expect(keygen.end == .exited(0))
                let list = site.path("authorized")
                try Data().write(to: URL(filePath: list))
                let closed = try await site.gateway(
                    of: sequencer,
                    options: [
                        "--curve-secret", site.path("gateway.secret"), "--authorized", list,
                    ])
                let refused = try await closed.http.ask("GET", "/stores")
                #expect(refused.status == 403)
                #expect(refused.json[key: "detail"]?.string?.contains("--http-token") == true)
            }
        }
    }
}
