import ConfluxEtcd
import Testing

/// Which texts are addresses of a log on etcd.
@Suite struct AddressTests {
    @Test(arguments: [
        ("etcd://a/p", "etcd://a:2379/p"), ("etcd://a:1,b,c:3/p/q", "etcd://a:1,b:2379,c:3/p/q"),
        ("etcds://[::1]:2379/conflux", "etcds://[::1]:2379/conflux"),
        ("etcds://[fe80::1]/x", "etcds://[fe80::1]:2379/x"),
    ])
    func `an address has members and a prefix`(text: String, full: String) {
        #expect(EtcdAddress(text)?.description == full)
        #expect(EtcdAddress(full)?.description == full)
    }

    @Test(arguments: [
        "", "etcd://", "etcd://a", "etcd://a/", "etcd:///p", "http://a/p", "etcd://a,/p",
        "etcd://a:0/p", "etcd://a:65536/p", "etcd://a:b/p", "etcd://a/p/", "etcd://a//p",
        "etcd://a/p q", "etcd://a b/p", "etcd://a,a/p", "etcd://a/p/commits", "etcd://a/meta",
        "etcd://user@a/p", "etcd://[a/p", "etcd://[zz]/p",
    ])
    func `anything else is no address`(text: String) {
        #expect(EtcdAddress(text) == nil)
    }

    @Test func `the members and the prefix of an address are bounded`() {
        func address(_ count: Int, _ prefix: Int) -> EtcdAddress? {
            let members = (1...count).map { "m\($0)" }.joined(separator: ",")
            return EtcdAddress("etcd://\(members)/\(String(repeating: "p", count: prefix))")
        }
        #expect(address(EtcdAddress.membersMax, 255) != nil)
        #expect(address(EtcdAddress.membersMax + 1, 255) == nil)
        #expect(address(EtcdAddress.membersMax, 256) == nil)
    }
}
