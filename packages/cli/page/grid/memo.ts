/** Wraps a component so that it is rendered again only if one of its properties has changed. */
import { Component, type ComponentType, createElement } from 'preact';

export function memo<Props extends object>(Inner: ComponentType<Props>): ComponentType<Props> {
  return class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const names = Object.keys(next) as (keyof Props)[];
      return names.some((name) => next[name] !== this.props[name]);
    }

    override render() {
      return createElement(Inner, this.props);
    }
  };
}
