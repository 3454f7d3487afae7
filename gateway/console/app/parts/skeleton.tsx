/** Holds the place of a value that is on its way, so that nothing jumps when it comes. */

export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="line" />
      ))}
    </div>
  );
}
