"""What the apps share that knows Django but no domain: fields, REST bases, idempotency, export."""
