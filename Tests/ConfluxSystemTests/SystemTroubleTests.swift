import ConfluxSystem
import Testing

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

@Suite struct SystemTroubleTests {
    @Test func `each error of a file system has its own advice, and none advises a backup`() {
        let found = [
            SystemTrouble(number: ENOSPC, hasInodes: true),
            SystemTrouble(number: ENOSPC, hasInodes: false),
            SystemTrouble(number: EDQUOT, hasInodes: true),
            SystemTrouble(number: EMFILE, hasInodes: true),
            SystemTrouble(number: ENFILE, hasInodes: true),
            SystemTrouble(number: EACCES, hasInodes: true),
            SystemTrouble(number: EROFS, hasInodes: true),
            SystemTrouble(number: EIO, hasInodes: true),
            SystemTrouble(number: ENOTDIR, hasInodes: true),
            SystemTrouble(number: EISDIR, hasInodes: true),
            SystemTrouble(number: ENAMETOOLONG, hasInodes: true),
            SystemTrouble(number: ELOOP, hasInodes: true),
            SystemTrouble(number: EFBIG, hasInodes: true),
            SystemTrouble(number: ENOMEM, hasInodes: true),
        ]
        #expect(found == SystemTrouble.allCases)
        #expect(SystemTrouble(number: EPERM, hasInodes: true) == .notPermitted)
        #expect(SystemTrouble(number: ENOENT, hasInodes: false) == nil)
        let advice = SystemTrouble.allCases.map(\.advice)
        #expect(Set(advice).count == advice.count)
        #expect(advice.allSatisfy { !$0.contains("backup") })
    }
}
