/// Finds the cases of an enum without associated values, such as synthesised coding keys.
enum EnumCases {
    /// Finds all cases of a type.
    ///
    /// If the type is not `CaseIterable`, it reads the number of cases from the type's metadata. That layout
    /// is part of Swift's stable ABI, and such an enum of at most 256 cases is stored as the number of its
    /// case in one byte.
    ///
    /// - Parameter type: The type.
    /// - Returns: The cases in the order of their declaration; nil if the type is not such an enum.
    static func all<Value>(of type: Value.Type) -> [Value]? {
        if let iterable = type as? any CaseIterable.Type {
            return list(iterable) as? [Value]
        }
        guard let count = count(of: type) else { return nil }
        return (0..<count).map { index in
            withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
                if MemoryLayout<Value>.size == 1 {
                    UnsafeMutableRawBufferPointer(place)[0] = UInt8(index)
                }
                return place[0]
            }
        }
    }

    private static func list<Cases: CaseIterable>(_ type: Cases.Type) -> [Any] {
        Array(type.allCases)
    }

    /// How many cases an enum without associated values has.
    private static func count<Value>(of type: Value.Type) -> Int? {
        let enumKind: UInt = 0x201
        let metadata = unsafeBitCast(type as Any.Type, to: UnsafeRawPointer.self)
        guard metadata.load(as: UInt.self) == enumKind else { return nil }
        let descriptor = metadata.load(
            fromByteOffset: MemoryLayout<UInt>.size, as: UnsafeRawPointer.self)
        // After flags, parent, name, access function and fields, 4 bytes each.
        let payloadCases = descriptor.load(fromByteOffset: 20, as: UInt32.self) & 0xFF_FFFF
        let emptyCases = Int(descriptor.load(fromByteOffset: 24, as: UInt32.self))
        guard payloadCases == 0, (1...256).contains(emptyCases),
            MemoryLayout<Value>.size == (emptyCases == 1 ? 0 : 1)
        else { return nil }
        return emptyCases
    }
}
