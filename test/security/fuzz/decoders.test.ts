import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { BusError } from '../../../tray/dbus/connect.ts'
import { decodeMessage, lengthOfMessage } from '../../../tray/dbus/message.ts'
import { readValues, parseTypes } from '../../../tray/dbus/marshal.ts'
import { toPixmap } from '../../../tray/sni/pixmap.ts'
import { bytesLike, holds, textOf } from '../../support/fuzz/fuzz.ts'

const orBusError = <Result>(task: () => Result): Result | undefined => {
  try {
    return task()
  } catch (error) {
    assert.ok(error instanceof BusError, String(error))
    return undefined
  }
}

describe('any bytes on the bus', () => {
  holds(
    'are a message or an error of ours',
    5000,
    fc.property(bytesLike('messages'), (bytes) => {
      const length = orBusError(() => lengthOfMessage(bytes))
      if (length !== undefined) assert.ok(length >= 16 && length <= 16 * 1024 * 1024)
      const message = orBusError(() => decodeMessage(bytes))
      if (message?.body) assert.ok(message.body.length <= bytes.length)
    }),
  )

  holds(
    'are values of any signature, or an error of ours',
    3000,
    fc.property(
      textOf(['a', '{', '}', '(', ')', 's', 'v', 'y', 'a{sv}', 'aa', '((', 'x', 'g', '()']),
      bytesLike('messages'),
      fc.boolean(),
      (signature, bytes, isLittle) => {
        orBusError(() => parseTypes(signature))
        const read = orBusError(() => readValues(signature, bytes, isLittle))
        if (read) assert.ok(read.length <= bytes.length)
      },
    ),
  )
})

describe('any bytes as a picture', () => {
  holds(
    'are one of a size that is taken, or an error',
    1500,
    fc.property(bytesLike('pictures'), (bytes) => {
      try {
        const { width, height, argb } = toPixmap(bytes)
        assert.ok(width <= 512 && height <= 512)
        assert.equal(argb.length, width * height * 4)
      } catch (error) {
        assert.ok(
          error instanceof Error && !(error instanceof assert.AssertionError),
          String(error),
        )
      }
    }),
  )
})
