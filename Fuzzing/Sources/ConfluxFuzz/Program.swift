import Foundation

/// Which target runs: set once by `LLVMFuzzerInitialize`, before any input.
// Written before libFuzzer's loop begins and read by it alone, on the same thread.
nonisolated(unsafe) private var chosen: FuzzTarget?

/// Takes the target's name from `--target=NAME`; everything else is libFuzzer's.
@_cdecl("LLVMFuzzerInitialize")
public func chooseTarget(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> CInt {
    let words = (0..<Int(count.pointee)).compactMap { index in
        arguments.pointee[index].map { String(cString: $0) }
    }
    if words.contains("--list") {
        for target in FuzzTarget.all { print(target.name, target.lengthMax) }
        exit(0)
    }
    let option = "--target="
    guard let name = words.first(where: { $0.hasPrefix(option) })?.dropFirst(option.count),
        let target = FuzzTarget.all.first(where: { $0.name == name })
    else {
        let names = FuzzTarget.all.map(\.name).joined(separator: ", ")
        FileHandle.standardError.write(Data("name one by --target=: \(names)\n".utf8))
        exit(64)
    }
    chosen = target
    return 0
}

/// Runs the target on one input.
@_cdecl("LLVMFuzzerTestOneInput")
public func run(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    chosen?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}
