/* oxlint-disable no-underscore-dangle -- names of systray2 */

/*
 * The protocol between systray2 and its program, one JSON document per line: the program sends `ready`,
 * gets the menu and later its changes, and sends which row was clicked.
 */

/** A row as systray2 sends it, numbered from 1 over the whole tree. */
export type Item = {
  readonly __id: number
  readonly title: string
  readonly enabled: boolean
  readonly hidden: boolean
  readonly items: readonly Item[]
}

export type Appearance = { readonly icon: Buffer; readonly tooltip: string }

export type Order =
  | { readonly do: 'show-menu'; readonly appearance: Appearance; readonly items: readonly Item[] }
  | { readonly do: 'show-icon'; readonly appearance: Appearance }
  | { readonly do: 'show-item'; readonly item: Item }
  | { readonly do: 'exit' }

export const readyLine = '{"type":"ready"}\n'
export const clickedLine = (id: number): string =>
  `${JSON.stringify({ type: 'clicked', item: {}, seq_id: -1, __id: id })}\n`

/** Undefined for an unknown line. */
export const parseOrder = (line: string): Order | undefined => {
  const message = toObject(parseJson(line))
  switch (message['type']) {
    case undefined:
      if (!Array.isArray(message['items'])) return undefined
      return {
        do: 'show-menu',
        appearance: toAppearance(message),
        items: toItems(message['items']),
      }
    case 'update-menu':
      return { do: 'show-icon', appearance: toAppearance(toObject(message['menu'])) }
    case 'update-item': {
      const [item] = toItems([message['item']])
      return item && { do: 'show-item', item }
    }
    case 'exit':
      return { do: 'exit' }
    default:
      return undefined
  }
}

const parseJson = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const toAppearance = (menu: Record<string, unknown>): Appearance => ({
  icon: Buffer.from(toText(menu['icon']), 'base64'),
  tooltip: toText(menu['tooltip']),
})

const toItems = (values: unknown): Item[] =>
  (Array.isArray(values) ? values : []).flatMap((value) => {
    const { __id, title, enabled, hidden, items } = toObject(value)
    if (typeof __id !== 'number') return []
    return [
      {
        __id,
        title: toText(title),
        enabled: enabled !== false,
        hidden: hidden === true,
        items: toItems(items),
      },
    ]
  })

const toObject = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const toText = (value: unknown): string => (typeof value === 'string' ? value : '')
