/// A run of bytes that shares its storage with the array that it was cut from.
///
/// Cutting a piece out of a received frame copies nothing. Indices are those of the storage, so the
/// first byte is at `startIndex`, which need not be 0.
public typealias Bytes = ArraySlice<UInt8>
