import ConfluxArguments
import ConfluxProtocol
import ConfluxVocabulary
import Testing

@testable import ConfluxGateway

/// What is published where, as the command line says it and as the gateway announces it.
struct PublicationTests {
    private func publication(_ text: String) throws -> Publication {
        try ValueParser<Publication>.publication.parse(text)
    }

    private func store(_ text: String) throws -> StoreName { try #require(StoreName(text)) }

    @Test func `an address stands for all stores, and a pattern before it for some`() throws {
        let all = try publication("tcp://127.0.0.1:0")
        let (prefs, counter) = (try store("document/prefs"), try store("counter/shared"))
        #expect(all.pattern == nil && all.covers(prefs))
        let some = try publication("document/*=tcp://127.0.0.1:7410")
        #expect("\(some.endpoint)" == "tcp://127.0.0.1:7410")
        #expect(some.covers(prefs) && !some.covers(counter))
        #expect("\(try publication("counter=ipc:///run/a"))" == "counter/shared=ipc:///run/a")
    }

    @Test func `a path may have an equals sign`() throws {
        let all = try publication("ipc:///run/a=b")
        #expect(all.pattern == nil && "\(all.endpoint)" == "ipc:///run/a=b")
        let some = try publication("counter=ipc:///run/a=b=c")
        #expect(some.pattern != nil && "\(some.endpoint)" == "ipc:///run/a=b=c")
    }

    @Test(arguments: ["", "=", "counter", "a=b", "=tcp://127.0.0.1:0", "a/b/c=tcp://127.0.0.1:0"])
    func `anything else is refused`(text: String) {
        #expect(throws: InvalidValue.self) { try publication(text) }
    }

    @Test func `one plain address is announced as such, and others with their patterns`() throws {
        let plain = try publication("tcp://127.0.0.1:0")
        let some = try publication("document/*=tcp://127.0.0.1:0")
        #expect(Publication.field([]) == nil)
        #expect(Publication.field([(plain, "a")])?.description == #""a""#)
        #expect(
            Publication.field([(some, "a")])?.description
                == #"[{"address":"a","stores":"document/*"}]"#)
        #expect(
            Publication.field([(some, "a"), (plain, "b")])?.description
                == #"[{"address":"a","stores":"document/*"},{"address":"b","stores":"*/*"}]"#)
    }

    @Test func `a socket's domain is read back, and no other text is a domain`() {
        for domain in [Authenticator.Domain.publish(0), .publish(17), .ask] {
            #expect(Authenticator.Domain(domain.text) == domain)
        }
        for text in ["", "publish", "publish-", "publish-x", "asking"] {
            #expect(Authenticator.Domain(text) == nil)
        }
    }
}
