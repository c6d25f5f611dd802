import { BusError } from '../dbus/connect.ts'
import type { ServedMethod, ServedObject } from '../dbus/served-object.ts'
import { type Variant, variant } from '../dbus/marshal.ts'
import type { Row } from '../menu.ts'
import { escapeLabel } from '../text.ts'

/*
 * The menu as `com.canonical.dbusmenu`: the panel reads the tree once and is notified of changes. The
 * rows are fixed; only their text, visibility and whether a click is possible change.
 * https://github.com/AyatanaIndicators/libdbusmenu, libdbusmenu-glib/dbus-menu.xml
 */

export const menuInterface = 'com.canonical.dbusmenu'

type Properties = Map<string, Variant>
type Layout = [id: number, properties: Properties, rows: Variant<Layout>[]]

/** A row as the panel knows it, by its number. */
type Item = { readonly id: number; readonly row: Row; readonly items: readonly Item[] }

const root = 0

/**
 * A menu of these rows; `onClick` gets a row that can be clicked and was. `onPartRead` gets the numbers of the
 * submenus that a panel has not read with the rest: see `LayoutUpdated` in `item.ts`.
 */
export class MenuObject {
  readonly object: ServedObject
  #items = new Map<number, Item>()
  readonly #onClick: (row: Row) => void
  readonly #onPartRead: (submenus: readonly number[]) => void
  /** Names on the bus. */
  readonly #partReaders = new Set<string>()

  constructor(
    rows: readonly Row[],
    onClick: (row: Row) => void,
    onPartRead: (submenus: readonly number[]) => void = () => undefined,
  ) {
    this.#onClick = onClick
    this.#onPartRead = onPartRead
    this.#items = toItems(rows)
    this.object = {
      [menuInterface]: {
        methods: { ...this.#readMethods(), ...this.#eventMethods() },
        properties: {
          Version: () => variant('u', 3),
          TextDirection: () => variant('s', 'ltr'),
          Status: () => variant('s', 'normal'),
          IconThemePath: () => variant('as', []),
        },
      },
    }
  }

  /**
   * Shows rows of the same shape. Signature and values of the `ItemsPropertiesUpdated` signal; undefined
   * when all look as before.
   */
  show(rows: readonly Row[]): { signature: string; body: readonly unknown[] } | undefined {
    const before = this.#items
    this.#items = toItems(rows)
    const changed = [...this.#items.values()].filter(({ id, row }) => {
      const old = before.get(id)?.row
      return (
        !old ||
        isClickable(old) !== isClickable(row) ||
        old.text !== row.text ||
        old.hidden !== row.hidden
      )
    })
    if (changed.length === 0) return undefined
    const updated = changed.map((item) => [item.id, getProperties(item)])
    return { signature: updateSignature, body: [updated, []] }
  }

  #getItem(id: unknown): Item {
    const item = this.#items.get(Number(id))
    if (!item) throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
    return item
  }

  #readMethods(): Readonly<Record<string, ServedMethod>> {
    return {
      GetLayout: {
        takes: 'iias',
        gives: 'u(ia{sv}av)',
        run: ([id, depth, names], sender) => {
          if (id === root && depth === 1) this.#reportPart(sender)
          return [1, toLayout(this.#getItem(id), Number(depth), toTexts(names))]
        },
      },
      GetGroupProperties: {
        takes: 'aias',
        gives: 'a(ia{sv})',
        run: ([ids, names]) => {
          const wanted = toList(ids).length === 0 ? [...this.#items.keys()] : toList(ids)
          const known = wanted.flatMap((id) => this.#items.get(Number(id)) ?? [])
          return [known.map((item) => [item.id, only(getProperties(item), toTexts(names))])]
        },
      },
      GetProperty: {
        takes: 'is',
        gives: 'v',
        run: ([id, name]) => {
          const value = getProperties(this.#getItem(id)).get(String(name))
          if (!value) throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
          return [value]
        },
      },
      AboutToShow: { takes: 'i', gives: 'b', run: () => [false] },
      AboutToShowGroup: { takes: 'ai', gives: 'aiai', run: () => [[], []] },
    }
  }

  /** Once for each panel, so that none can turn it into a loop. */
  #reportPart(reader: string): void {
    if (this.#partReaders.has(reader)) return
    this.#partReaders.add(reader)
    const submenus = [...this.#items.values()].filter(({ id, row }) => id !== root && row.rows)
    this.#onPartRead(submenus.map(({ id }) => id))
  }

  #eventMethods(): Readonly<Record<string, ServedMethod>> {
    return {
      Event: {
        takes: 'isvu',
        gives: '',
        run: ([id, kind]) => {
          this.#click(this.#getItem(id), kind)
          return []
        },
      },
      EventGroup: {
        takes: 'a(isvu)',
        gives: 'ai',
        run: ([events]) => {
          const unknownIds: unknown[] = []
          for (const [id, kind] of toList(events).map(toList)) {
            const item = this.#items.get(Number(id))
            if (item) this.#click(item, kind)
            else unknownIds.push(id)
          }
          return [unknownIds]
        },
      },
    }
  }

  /** Ignores rows that cannot be clicked: over the bus a program can click even a hidden row. */
  #click({ row }: Item, kind: unknown): void {
    if (kind === 'clicked' && row.action && !row.hidden) this.#onClick(row)
  }
}

const updateSignature = 'a(ia{sv})a(ias)'

/** All rows by number, with the root; the numbers depend on the shape alone. */
const toItems = (rows: readonly Row[]): Map<number, Item> => {
  const found = new Map<number, Item>()
  let last = root
  const add = (row: Row, id: number): Item => {
    const items = (row.rows ?? []).map((child) => add(child, (last += 1)))
    const item = { id, row, items }
    found.set(id, item)
    return item
  }
  add({ text: '', rows }, root)
  return found
}

const toLayout = ({ id, row, items }: Item, depth: number, names: readonly string[]): Layout => [
  id,
  only(getProperties({ id, row, items }), names),
  (depth === 0 ? [] : items).map((item) => variant('(ia{sv}av)', toLayout(item, depth - 1, names))),
]

const isClickable = (row: Row): boolean => row.action !== undefined || row.rows !== undefined

const getProperties = ({ id, row }: Item): Properties => {
  const submenu = ['children-display', variant('s', 'submenu')] as const
  if (id === root) return new Map<string, Variant>([submenu])
  const visible = ['visible', variant('b', !row.hidden)] as const
  if (row.separator) return new Map<string, Variant>([['type', variant('s', 'separator')], visible])
  return new Map<string, Variant>([
    ['label', variant('s', escapeLabel(row.text, 'linux'))],
    ['enabled', variant('b', isClickable(row))],
    visible,
    ...(row.rows ? [submenu] : []),
  ])
}

/** The properties with these names; all for an empty list. */
const only = (properties: Properties, names: readonly string[]): Properties =>
  names.length === 0
    ? properties
    : new Map([...properties].filter(([name]) => names.includes(name)))

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const toTexts = (value: unknown): string[] => toList(value).map(String)
