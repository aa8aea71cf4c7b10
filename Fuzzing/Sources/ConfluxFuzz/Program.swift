import Foundation

/// The target that runs. `LLVMFuzzerInitialize` sets it once, before any input.
// It is written before libFuzzer's loop begins, and only read in the loop, on the same thread.
nonisolated(unsafe) private var chosen: FuzzTarget?

/// Takes the target's name from `--target=NAME`. All other arguments are for libFuzzer.
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
